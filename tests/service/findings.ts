/** What an answer must not have in it, by who asked. */
import { SECRET } from './oddities.js';
import type { Name, Principal } from './principals.js';
import { type Fuzzed, NAMESPACES } from './requests.js';
import type { Received } from './wire.js';

const FOUND_MAX = 20;
const EMPTY = /"token":0,"holders":\[\],"holding":0,"waiters":\[\],"waiting":0/;
const ACTION = /^POST \/(?:v2\/locks\/(shop-\d)\/[\w%-]+|v1\/(shop-\d)\/lock\/[\w-]+)\/(\w+) /;

export class Findings {
  /** Answers that should never be, and those that tell a secret. */
  readonly list: string[] = [];
  readonly statuses = new Map<string, number>();
  /** Holds that the service made, and for whom. */
  readonly holds = new Map<string, Name>();
  readonly #credentials: readonly string[];

  constructor(everybody: readonly Principal[]) {
    const credentials = everybody.flatMap(({ credential }) => (credential === null ? [] : [credential]));
    // Their ends: what comes before is no secret, and both may be cut.
    this.#credentials = [...new Set(credentials)].map((credential) => credential.slice(-40));
  }

  note({ who, route, bytes }: Fuzzed, got: Received): void {
    const { status, head, text } = got;
    const kind = `${Math.floor(status / 100)}xx`;
    this.statuses.set(kind, (this.statuses.get(kind) ?? 0) + 1);
    for (const what of this.#wrongIn(who, route, bytes, got)) {
      if (this.list.length >= FOUND_MAX) return;
      this.list.push(`${what}: ${who.name}, ${bytes.slice(0, 2_000)}\n→ ${head}\n${text.slice(0, 1_000)}`);
    }
  }

  /** A log line, or anything else that nobody asked for. */
  tells(text: string): boolean {
    const isTold = text.includes(SECRET) || this.#credentials.some((end) => text.includes(end));
    return isTold || wordsOf(text).some((word) => this.holds.has(word));
  }

  *#wrongIn(who: Principal, route: string, bytes: string, got: Received): Generator<string> {
    const { status, head, text } = got;
    // A machine so busy that the store was late is told so: asked again, it answers.
    if (status === 503 && text.includes('"code":"unknown"')) return;
    if (status >= 500) yield 'failed';
    const isGrant = status === 200 && route.endsWith('acquire');
    // What came from its sender alone may go back to its sender: a grant has its hold, /v1 repeats the instance.
    const isOwn = isGrant || (status === 200 && route.startsWith('v1'));
    const made = isGrant ? /"hold":"([^".]+)/.exec(text)?.[1] : undefined;
    if (made !== undefined && !made.startsWith(SECRET)) this.holds.set(made, who.name);
    const rest = isOwn ? text.replaceAll(`${SECRET}-${who.name}-`, '').replace(made ?? '""', '') : text;
    if (this.tells(head) || this.tells(rest)) yield 'shows a secret';
    yield* foreignIn(who, route, status, text);
    const [, space2, space1, action] = ACTION.exec(bytes) ?? [];
    const role = action === 'evict' ? 'admin' : 'lock';
    if (status === 200 && action !== undefined && !who.may(role, space2 ?? space1 ?? '')) yield 'let in';
    if (text.includes('"owner":"stranger-')) yield 'was changed by a stranger';
  }
}

/** Whatever is in a namespace that somebody may not read: a look at it has to show nothing. */
function* foreignIn(who: Principal, route: string, status: number, text: string): Generator<string> {
  for (const space of NAMESPACES) {
    if (who.may('read', space)) continue;
    if (text.includes(`inside-${space}`)) yield 'shows a foreign owner or metadata';
    if (status !== 200 || route === 'batch') continue;
    if (text.includes(`"key":"${space}/`) && !EMPTY.test(text)) yield 'shows a foreign lock';
    if (text.includes(`"namespace":"${space}"`) && /"(owner|expiry)":/.test(text))
      yield 'shows a foreign lock';
  }
}

function wordsOf(text: string): string[] {
  return text.match(/[A-Za-z0-9_~-]{20,}/g) ?? [];
}
