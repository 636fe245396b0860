/** `fetch` as far as it is used: that of Node, or one like it. */

export interface RequestLike {
  readonly method: 'GET' | 'POST';
  readonly headers: Record<string, string>;
  readonly body?: string;
  /** A redirected POST would become a GET, and the key would go wherever the redirection says. */
  readonly redirect: 'manual';
  readonly signal: AbortSignal;
}

export interface ResponseLike {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: AsyncIterable<Uint8Array> | null;
  text(): Promise<string>;
}

export type FetchLike = (url: string, request: RequestLike) => Promise<ResponseLike>;
