/**
 * For a rejection or an error event that changes nothing, as in `promise.catch(ignore)`. A comment at each use says why.
 * The only way to drop an error in the packages: a rule test refuses the others.
 */
export function ignore(_error: unknown): void {}
