/** The findings of a probe, by level. */
import type { Finding } from '../../protocol/index.js';

export const good = (text: string): Finding => ({ level: 'good', text });
export const note = (text: string): Finding => ({ level: 'note', text });
export const warning = (text: string): Finding => ({ level: 'warning', text });
