/**
 * Rights as people write them: `ROLE:NAMESPACE`, as in `lock:billing`. A `*` at the end matches any ending: `read:team-*`,
 * `admin:*`. Without it the namespace has to match exactly, so that `lock:bill` is no right on `billing`. The role lock
 * includes read, and admin includes lock. Keys without a namespace belong to `*` alone.
 */
import { InvalidArgumentError } from 'holdfast';
import type { Role } from '../http/principal.js';

export interface Right {
  readonly role: Role;
  /** The namespace, or its beginning. */
  readonly namespace: string;
  readonly prefix: boolean;
}

const RANK: Readonly<Record<Role, number>> = { read: 1, lock: 2, admin: 3 };
const RIGHT = /^(read|lock|admin):([A-Za-z0-9_.-]{1,64}|[A-Za-z0-9_.-]{0,63}\*)$/;
/** A limit, because every request checks all rights. */
const RIGHTS_MAX = 100;

/** Null for text that is not a right. */
export function rightOf(text: string): Right | null {
  const [, role, pattern] = RIGHT.exec(text) ?? [];
  if (role === undefined || pattern === undefined) return null;
  const prefix = pattern.endsWith('*');
  return { role: role as Role, namespace: prefix ? pattern.slice(0, -1) : pattern, prefix };
}

export function rightsOf(texts: readonly string[]): readonly Right[] {
  if (texts.length > RIGHTS_MAX) {
    throw new InvalidArgumentError(
      `There are ${texts.length} rights, but at most ${RIGHTS_MAX} are allowed.`,
    );
  }
  return texts.map((text) => {
    const right = rightOf(text);
    if (right) return right;
    throw new InvalidArgumentError(
      `${JSON.stringify(text.slice(0, 80))} is not a right: write ROLE:NAMESPACE, such as "lock:billing", "read:team-*" or "admin:*".`,
    );
  });
}

export function allows(rights: readonly Right[], role: Role, namespace: string): boolean {
  return rights.some((right) => RANK[right.role] >= RANK[role] && covers(right, namespace));
}

/** Prefixes of the keys that are allowed, in order. None starts with another. */
export function prefixesOf(rights: readonly Right[], role: Role): readonly string[] {
  const enough = rights.filter((right) => RANK[right.role] >= RANK[role]);
  const prefixes: string[] = [];
  for (const prefix of enough.map(prefixOf).sort()) {
    const last = prefixes.at(-1);
    if (last === undefined || !prefix.startsWith(last)) prefixes.push(prefix);
  }
  return prefixes;
}

function prefixOf({ namespace, prefix }: Right): string {
  return prefix ? namespace : `${namespace}/`;
}

function covers(right: Right, namespace: string): boolean {
  if (!right.prefix) return right.namespace === namespace;
  return namespace.startsWith(right.namespace);
}
