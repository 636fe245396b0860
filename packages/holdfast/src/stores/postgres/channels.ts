/** Inboxes as channels of NOTIFY, and hints as their payloads. The other half is `_tell` in sql/write.ts. */
import { createHash } from 'node:crypto';
import type { Why } from '../../protocol/index.js';
import { CHANNEL_BYTES_MAX, CHANNEL_PREFIX } from './sql/write.js';

export function channelOf(inbox: string): string {
  const channel = `${CHANNEL_PREFIX}${inbox}`;
  if (Buffer.byteLength(channel) <= CHANNEL_BYTES_MAX) return channel;
  return `${CHANNEL_PREFIX}${createHash('md5').update(inbox).digest('hex')}`;
}

/** Anybody may NOTIFY on a channel: what is no hint is nothing. */
export function hintIn(payload: string): { readonly key: string; readonly why: Why } | null {
  const [, why, key] = /^(turn|waiting|evicted) (.+)$/su.exec(payload) ?? [];
  return key === undefined ? null : { key, why: why as Why };
}
