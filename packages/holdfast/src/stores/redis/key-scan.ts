/** The keys of the locks: scans every server, and sorts. */
import { keysInOrder, type ListQuery } from '../../protocol/index.js';
import { listOf, textOf } from './codec.js';
import type { Connection, Server } from './connection.js';

/** Keys per step of a scan: each step blocks its server for well under a millisecond. */
const SCAN_STEP = 500;

/** `keyPrefix`: the prefix of every key in Redis. Scans return some keys twice; the result has no duplicates. */
export async function scanKeys(
  connection: Connection,
  keyPrefix: string,
  query: ListQuery,
): Promise<readonly string[]> {
  const keys = new Set<string>();
  const servers = await connection.servers();
  // A cluster client that is still connecting knows no servers: that is not the same as no keys.
  if (servers.length === 0) throw new Error('The cluster client knows no server yet.');
  await Promise.all(servers.map((server) => scan(server, keyPrefix + query.prefix, keys)));
  return keysInOrder(
    [...keys].map((key) => key.slice(keyPrefix.length)),
    query,
  );
}

async function scan(server: Server, prefix: string, keys: Set<string>): Promise<void> {
  let cursor = '0';
  do {
    const reply = await server.send(
      'SCAN',
      cursor,
      'MATCH',
      `${escaped(prefix)}*`,
      'COUNT',
      String(SCAN_STEP),
    );
    const [next, page] = listOf(reply);
    for (const key of listOf(page)) keys.add(textOf(key));
    cursor = textOf(next);
  } while (cursor !== '0');
}

/** A pattern that matches exactly this text. */
function escaped(text: string): string {
  return text.replaceAll(/[\\*?[\]^-]/g, '\\$&');
}
