/** Prefixes of keys to read: those that a principal may see, narrowed to those that it asked for. */
import { compareKeys, type ListQuery } from 'holdfast/protocol';

/** The part of the allowed prefixes that starts with `asked`, in the same order. */
export function narrowed(allowed: readonly string[], asked: string): readonly string[] {
  return allowed.flatMap((prefix) => {
    if (prefix.startsWith(asked)) return prefix;
    return asked.startsWith(prefix) ? asked : [];
  });
}

/** List queries for all keys after this one, prefix by prefix. The key itself need not exist. */
export function queriesAfter(prefixes: readonly string[], after: string | undefined): readonly ListQuery[] {
  if (!after) return prefixes.map((prefix) => ({ prefix }));
  return prefixes.flatMap((prefix) => {
    if (after.startsWith(prefix)) return { prefix, after };
    return compareKeys(prefix, after) > 0 ? { prefix } : [];
  });
}
