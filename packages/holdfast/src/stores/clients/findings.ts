/** The findings of a probe. */
import type { Finding } from '../../protocol/index.js';

export const good = (text: string): Finding => ({ level: 'good', text });
export const note = (text: string): Finding => ({ level: 'note', text });
export const warning = (text: string): Finding => ({ level: 'warning', text });

/** Those that apply: a condition that is false, or a value that is missing, stands for none. */
export function findingsOf(...found: readonly (Finding | false | null | undefined)[]): readonly Finding[] {
  return found.filter((one): one is Finding => Boolean(one));
}
