/** Errors of the operating system by their codes, and errors that change nothing. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

/** For an error event that changes nothing, next to a comment that says why. */
export function ignore(_error: unknown): void {}
