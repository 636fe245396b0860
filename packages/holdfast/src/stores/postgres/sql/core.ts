/** The table and the functions that the store calls. Statements that may be run again. */
import { applySql } from './apply.js';
import { claimSql } from './claim.js';
import { decideSql } from './decide.js';
import { draftSql } from './draft.js';
import { endingsSql } from './endings.js';
import { lineSql } from './line.js';
import { quoteName } from './quoting.js';
import { readSql } from './read.js';
import { tablesSql } from './tables.js';
import { writeSql } from './write.js';

const PARTS = [tablesSql, draftSql, lineSql, claimSql, endingsSql, decideSql, writeSql, applySql, readSql];

export function coreSql(name: string): string {
  const schema = quoteName(name);
  return PARTS.map((part) => part(schema)).join('\n');
}
