/** Errors of Node itself are of another realm under Jest, where `instanceof Error` is false for them. */
export const isError = (value: unknown): value is Error =>
  value instanceof Error || Object.prototype.toString.call(value) === '[object Error]';
