/** Which keys there are: a scan of every server, in the order of the keys, then their records, a page at a time. */
import { keysInOrder, type ListQuery } from '../../protocol/index.js';
import type { Connection, Server } from './connection.js';
import { listOf, textOf } from './items.js';

/** How many keys a step of a scan looks at: each step blocks its server for well under a millisecond. */
const SCAN_STEP = 500;

/** `begin` is what all our keys begin with at Redis. Doubles, as scans give, are taken out. */
export async function keysListed(
  connection: Connection,
  begin: string,
  query: ListQuery,
): Promise<readonly string[]> {
  const keys = new Set<string>();
  const servers = await connection.servers();
  // One that is still connecting knows none: that is not the same as no keys.
  if (servers.length === 0) throw new Error('The cluster has no server that can be asked.');
  await Promise.all(servers.map((server) => scan(server, begin + query.prefix, keys)));
  return keysInOrder(
    [...keys].map((key) => key.slice(begin.length)),
    query,
  );
}

async function scan(server: Server, begin: string, keys: Set<string>): Promise<void> {
  let cursor = '0';
  do {
    const reply = await server.send(
      'SCAN',
      cursor,
      'MATCH',
      `${escaped(begin)}*`,
      'COUNT',
      String(SCAN_STEP),
    );
    const [next, page] = listOf(reply);
    for (const key of listOf(page)) keys.add(textOf(key));
    cursor = textOf(next);
  } while (cursor !== '0');
}

/** A pattern that means exactly these letters. */
function escaped(text: string): string {
  return text.replaceAll(/[\\*?[\]^-]/g, '\\$&');
}
