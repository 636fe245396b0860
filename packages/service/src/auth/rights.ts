/**
 * Rights as people write them: `ROLE:NAMESPACE`, as in `lock:billing`. A star at the end stands for any rest:
 * `read:team-*`, `admin:*`. Without it the namespace is meant exactly, so that `lock:bill` is no right on `billing`.
 * Who may lock may read, and who is admin may lock. Keys that are in no namespace belong to `*` alone.
 */
import { InvalidArgumentError } from 'holdfast';
import type { Role } from '../http/principal.js';

export interface Right {
  readonly role: Role;
  /** What the namespace begins with, or is. */
  readonly namespace: string;
  readonly prefix: boolean;
}

const RANK: Readonly<Record<Role, number>> = { read: 1, lock: 2, admin: 3 };
const RIGHT = /^(read|lock|admin):([A-Za-z0-9_.-]{1,64}|[A-Za-z0-9_.-]{0,63}\*)$/;
/** More are a mistake, and would have to be looked through with every request. */
const RIGHTS_MAX = 100;

/** The right, or null for what is none. */
export function rightOf(text: string): Right | null {
  const [, role, pattern] = RIGHT.exec(text) ?? [];
  if (role === undefined || pattern === undefined) return null;
  const prefix = pattern.endsWith('*');
  return { role: role as Role, namespace: prefix ? pattern.slice(0, -1) : pattern, prefix };
}

export function rightsOf(texts: readonly string[]): readonly Right[] {
  if (texts.length > RIGHTS_MAX) {
    throw new InvalidArgumentError(`There are ${texts.length} rights, but ${RIGHTS_MAX} are the most.`);
  }
  return texts.map((text) => {
    const right = rightOf(text);
    if (right) return right;
    throw new InvalidArgumentError(
      `${JSON.stringify(text.slice(0, 80))} is no right: write ROLE:NAMESPACE, such as "lock:billing", "read:team-*" or "admin:*".`,
    );
  });
}

export function allows(rights: readonly Right[], role: Role, namespace: string): boolean {
  return rights.some((right) => RANK[right.role] >= RANK[role] && covers(right, namespace));
}

/** What the keys begin with that are allowed, in order. One that begins with another is in that one. */
export function reachOf(rights: readonly Right[], role: Role): readonly string[] {
  const enough = rights.filter((right) => RANK[right.role] >= RANK[role]);
  const reach: string[] = [];
  for (const begin of enough.map(beginOf).sort()) {
    const last = reach.at(-1);
    if (last === undefined || !begin.startsWith(last)) reach.push(begin);
  }
  return reach;
}

function beginOf({ namespace, prefix }: Right): string {
  return prefix ? namespace : `${namespace}/`;
}

function covers(right: Right, namespace: string): boolean {
  if (!right.prefix) return right.namespace === namespace;
  return namespace.startsWith(right.namespace);
}
