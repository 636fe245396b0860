/** Where to look: nowhere beyond what somebody may see, and nowhere beyond what they ask for. */
import { compareKeys, type ListQuery } from 'holdfast/protocol';

/** What keys begin with that are in this reach and begin with `asked`; in order, as the reach is. */
export function within(reach: readonly string[], asked: string): readonly string[] {
  return reach.flatMap((begin) => {
    if (begin.startsWith(asked)) return begin;
    return asked.startsWith(begin) ? asked : [];
  });
}

/** What to list of these, one after the other, for all keys behind this one. It may be gone by now. */
export function listingsBehind(begins: readonly string[], after: string | undefined): readonly ListQuery[] {
  if (!after) return begins.map((prefix) => ({ prefix }));
  return begins.flatMap((prefix) => {
    if (after.startsWith(prefix)) return { prefix, after };
    return compareKeys(prefix, after) > 0 ? { prefix } : [];
  });
}
