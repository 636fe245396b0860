/** Every version of the schema, in order, from 1. A published version never changes: changes are a new version. */
import { applySql } from './sql/apply.js';
import { claimSql } from './sql/claim.js';
import { decideSql, draftSql } from './sql/decide.js';
import { quoteName } from './sql/names.js';
import { plainSql } from './sql/plain-sql.js';
import { queueSql } from './sql/queue.js';
import { aboutSql, readSql, viewsSql } from './sql/reads.js';
import { tablesSql } from './sql/records.js';
import { renewReleaseEvictSql } from './sql/renew-release-evict.js';

export interface Migration {
  readonly version: number;
  /** The statements that change the previous version into this one. */
  readonly sql: (schema: string) => string;
}

/** The table and the functions that the store calls, each after those that it needs. */
const CORE = [tablesSql, draftSql, queueSql, claimSql, renewReleaseEvictSql, decideSql, applySql, readSql];

const coreSql = (name: string): string => CORE.map((part) => part(quoteName(name))).join('\n');

export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    sql: (schema) => [coreSql, plainSql, viewsSql, aboutSql].map((part) => part(schema)).join('\n'),
  },
];
