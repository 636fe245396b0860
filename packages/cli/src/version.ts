/** The version of this package. */
import { readFileSync } from 'node:fs';

export function version(): string {
  const description: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  const known = typeof description === 'object' && description !== null && 'version' in description;
  return known ? String(description.version) : 'unknown';
}
