/** `fetch`, for the stores that speak HTTP: the part of it that is used, and the header of every request. */
import { systemClock } from '../../clock.js';

/** The part of `fetch` that is used: Node's own, or a function like it. */
export type FetchLike = (url: string, request: RequestLike) => Promise<ResponseLike>;

/** The request that a `FetchLike` gets. */
export interface RequestLike {
  readonly method: 'GET' | 'POST';
  readonly headers: Record<string, string>;
  readonly body?: string;
  /** A followed redirect would turn a POST into a GET, and send the API key to another host. */
  readonly redirect: 'manual';
  readonly signal: AbortSignal;
}

/** The response that a `FetchLike` returns; a `Response` is one. */
export interface ResponseLike {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: AsyncIterable<Uint8Array> | null;
  text(): Promise<string>;
}

/** The resolution of the header `Date`: a reply names a second, in which its time lies. */
export const SECOND_MS = 1_000;

/**
 * A header that no other request has. Some frameworks replace `fetch` by one that answers an equal request from its memory,
 * POST too (Next 13 and 14): a renewal would be answered with an old reply, and never reach the store.
 */
export const uniqueHeader = (): Record<string, string> => ({ 'holdfast-request': systemClock.randomId() });
