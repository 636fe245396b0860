/** Findings about this server as it is configured, in sentences for users. */
import type { Guarantees } from '../../protocol/index.js';
import { findingsOf, good } from '../clients/findings.js';
import type { Database } from './database.js';

export async function probe(
  database: Database,
  _quoted: string,
): Promise<Pick<Guarantees, 'server' | 'findings'>> {
  const [row = {}] = await database.rows('SELECT VERSION() AS version, @@autocommit AS autocommit', []);
  return {
    server: `MySQL ${String(row.version)}`,
    findings: findingsOf(good("Time is the server's clock: the clocks of its clients decide nothing.")),
  };
}
