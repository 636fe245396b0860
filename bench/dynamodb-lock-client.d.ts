/** The part of dynamodb-lock-client that the benchmark uses: the package carries no types. */
declare module 'dynamodb-lock-client' {
  interface Settings {
    readonly dynamodb: object;
    readonly lockTable: string;
    readonly partitionKey: string;
    readonly acquirePeriodMs: number;
    readonly retryCount: number;
  }
  interface Lock {
    release(done: (error?: Error) => void): void;
  }
  class FailClosed {
    constructor(settings: Settings);
    acquireLock(id: string, done: (error: Error | undefined, lock: Lock) => void): void;
  }
  const library: { readonly FailClosed: typeof FailClosed };
  export default library;
}
