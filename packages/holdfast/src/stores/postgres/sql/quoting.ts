/** Names and texts inside SQL that is written here, where they cannot be parameters. */
import { InvalidArgumentError } from '../../../protocol/index.js';

export const SCHEMA = 'holdfast';

/** What PostgreSQL would cut off in silence, or what could end a quoted function body, is refused. */
export function checkSchema(schema: unknown): string {
  const isName = typeof schema === 'string' && /^[^\p{Cc}$]+$/u.test(schema) && schema.isWellFormed();
  if (isName && Buffer.byteLength(schema) <= 63) return schema;
  throw new InvalidArgumentError(
    `The schema ${JSON.stringify(schema) ?? String(schema)} is not usable: take 1 to 63 bytes, no control characters, no $.`,
  );
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Read the same whether or not the server takes backslashes for escapes. */
export function quoteText(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes('\\') ? `E${quoted.replaceAll('\\', '\\\\')}` : quoted;
}
