/** Which keys there are: the subjects of the stream, a page at a time, in the order of the keys. */
import { keysInOrder, type ListQuery } from '../../protocol/index.js';
import { type Bucket, subjectOf } from './bucket.js';
import { askApi, type NatsConnection } from './connection.js';
import type { Layout } from './layout.js';

export async function keysListed(
  connection: NatsConnection,
  bucketName: string,
  { stream }: Bucket,
  layout: Layout,
  query: ListQuery,
): Promise<readonly string[]> {
  const begin = subjectOf(bucketName, '');
  const keys = new Set<string>();
  for (let offset = 0; ; ) {
    const question = { subjects_filter: `${begin}>`, offset };
    const { state, total = 0 } = await askApi(connection, `STREAM.INFO.${stream}`, question);
    const subjects = Object.keys(state?.subjects ?? {});
    for (const subject of subjects) {
      const key = layout.keyOf(subject.slice(begin.length));
      if (key?.startsWith(query.prefix)) keys.add(key);
    }
    offset += subjects.length;
    if (subjects.length === 0 || offset >= total) return keysInOrder(keys, query);
  }
}
