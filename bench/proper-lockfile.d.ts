/** The part of proper-lockfile that is used here: the package carries no types. */
declare module 'proper-lockfile' {
  interface LockOptions {
    readonly realpath?: boolean;
    readonly stale?: number;
    readonly update?: number;
    readonly fs?: object;
    readonly onCompromised?: (error: Error) => void;
    readonly retries?:
      | number
      | {
          readonly forever: boolean;
          readonly retries: number;
          readonly factor: number;
          readonly minTimeout: number;
          readonly maxTimeout: number;
        };
  }
  const lockfile: { lock(file: string, options?: LockOptions): Promise<() => Promise<void>> };
  export default lockfile;
}
