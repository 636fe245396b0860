/**
 * The table of other software, with the column of Holdfast. An existing table gets the column and nothing else; a missing
 * table is created as the other software would create it. One statement, safe to run again.
 */
import { quoteText } from '../sql/names.js';
import { OWN } from './layout.js';
import { type Place, tableOf } from './row-sql.js';

/** A setting of the transaction: a DO block has no other way to return a value. */
export function tableScript({ layout, schema, table }: Place, foundSetting: string): string {
  const name = tableOf(schema, table);
  const columns = Object.keys(layout.columns).map(quoteText).join(', ');
  return `-- Holdfast: the column "${OWN}" in the table ${name} of the layout ${layout.name}. Safe to run again.
-- Whoever uses the locks needs SELECT, INSERT, UPDATE and DELETE on the table.
DO $holdfast$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(${quoteText(`holdfast migrate ${name}`)}, 0));
  PERFORM set_config('${foundSetting}', (SELECT count(*) FROM pg_attribute
    WHERE attrelid = to_regclass(${quoteText(name)}) AND attname = '${OWN}' AND NOT attisdropped)::text, true);
  -- Such times depend on the time zone of each session.
  IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass(${quoteText(name)}) AND NOT attisdropped
    AND atttypid = 'timestamp'::regtype AND attname IN (${columns})) THEN
    RAISE EXCEPTION 'The table % has times without a time zone. Nothing was changed.', ${quoteText(name)}
      USING ERRCODE = 'feature_not_supported',
        HINT = 'Change them to timestamptz first: ALTER TABLE … ALTER COLUMN … TYPE timestamptz.';
  END IF;
  -- A row with other times than were written counts as one of the other software.
  IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass(${quoteText(name)}) AND NOT attisdropped
    AND atttypid = 'timestamptz'::regtype AND atttypmod BETWEEN 0 AND 2 AND attname IN (${columns})) THEN
    RAISE EXCEPTION 'The table % has times that are not exact to the millisecond. Nothing was changed.', ${quoteText(name)}
      USING ERRCODE = 'feature_not_supported',
        HINT = 'Change them first: ALTER TABLE … ALTER COLUMN … TYPE timestamptz.';
  END IF;
  IF to_regclass(${quoteText(name)}) IS NULL THEN
${layout.create(name).replaceAll(/^/gm, '    ')}
  END IF;
  -- Needs the right to change the table only where the column is missing.
  IF current_setting('${foundSetting}') = '0' THEN
    ALTER TABLE ${name} ADD COLUMN IF NOT EXISTS ${OWN} jsonb;
  END IF;
END
$holdfast$;`;
}
