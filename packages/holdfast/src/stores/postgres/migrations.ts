/**
 * Every version of the schema, in order, from 1. A version that was published never changes: what changes is a new one.
 */
import { aboutSql } from './sql/about.js';
import { coreSql } from './sql/core.js';
import { plainSql } from './sql/plain.js';
import { viewsSql } from './sql/views.js';

export interface Migration {
  readonly version: number;
  /** Statements that lead from the version before to this one. */
  readonly sql: (schema: string) => string;
}

export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    sql: (schema) => [coreSql, plainSql, viewsSql, aboutSql].map((part) => part(schema)).join('\n'),
  },
];
