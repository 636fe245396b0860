/** The order in which the site shows the pages. A test compares it with the pages that are there. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DefaultTheme } from 'vitepress';

type Pages = readonly (readonly [text: string, link: string])[];

const group = (text: string, pages: Pages, collapsed = false): DefaultTheme.SidebarItem => ({
  text,
  collapsed,
  items: pages.map(([title, link]) => ({ text: title, link })),
});

/** `repository`: its folder. The decision records are listed as they are found. */
export function sidebarOf(repository: string): DefaultTheme.SidebarItem[] {
  return [
    group('Start', [
      ['Start here', '/start'],
      ['Which store', '/which-store'],
      ['The life of a lease', '/lease'],
      ['Recipes', '/recipes'],
      ['Troubleshooting', '/troubleshooting'],
      ['Glossary', '/glossary'],
    ]),
    group('Guide', [
      ['Guide', '/guide'],
      ['Guards', '/guards'],
      ['Elections', '/elections'],
      ['Schedules', '/schedules'],
      ['Spans and metrics', '/observability'],
      ['The holdfast command', '/cli'],
      ['Packages, runtimes and bundlers', '/packages'],
    ]),
    group('Stores', [
      ['Memory', '/stores/memory'],
      ['SQLite', '/stores/sqlite'],
      ['PostgreSQL', '/stores/postgres'],
      ['MySQL and MariaDB', '/stores/mysql'],
      ['Supabase', '/stores/supabase'],
      ['Redis', '/stores/redis'],
      ['Quorum of Redis servers', '/stores/quorum'],
      ['DynamoDB', '/stores/dynamodb'],
      ['Firestore', '/stores/firestore'],
      ['NATS', '/stores/nats'],
      ['etcd', '/stores/etcd'],
      ['HTTP', '/stores/http'],
      ['Add a store', '/adding-a-store'],
    ]),
    group('Guarantees', [
      ['Guarantees', '/guarantees'],
      ['Failures', '/failures'],
      ['Compared with other locks', '/comparison'],
      ['Benchmarks', '/benchmarks'],
    ]),
    group('Lock service', [
      ['The service', '/service/'],
      ['Operating it', '/service/operating'],
      ['Its API, with curl', '/service/api'],
      ['Its security', '/service/security'],
      ['Servers on the engine', '/engine'],
    ]),
    group('Reference', [
      ['Library', '/reference/library'],
      ['Stores', '/reference/stores'],
      ['Guards, schedules, telemetry', '/reference/tools'],
      ['For authors of stores', '/reference/authors'],
      ['Command', '/reference/cli'],
      ['HTTP', '/reference/http'],
    ]),
    group('Moving to Holdfast', [
      ['From other software', '/moving/'],
      ['From another library', '/moving/libraries'],
      ['cloops', '/moving/cloops'],
      ['distributed-locks', '/moving/distributed-locks'],
      ['dynamodb-lock-go', '/moving/dynamodb-lock-go'],
      ['LockServiceCentral: DynamoDB', '/moving/lock-service-central'],
      ['LockServiceCentral: PostgreSQL', '/moving/lock-service-central-postgres'],
      ['LockServiceCentral: etcd, Firestore', '/moving/lock-service-central-etcd-firestore'],
      ['LockServiceCentral: HTTP', '/moving/lock-service-central-http'],
      ['single-table', '/moving/single-table'],
    ]),
    group('Project', [
      ['Changelog', '/changelog'],
      ['Contributing', '/contributing'],
    ]),
    group('Decisions', decisions(join(repository, 'docs/adr')), true),
  ];
}

function decisions(folder: string): Pages {
  const records = readdirSync(folder).sort();
  return records.map((file) => {
    const name = file.replace(/\.md$/, '');
    return [name.replace(/^0*(\d+)-/, '$1. ').replaceAll('-', ' '), `/adr/${name}`] as const;
  });
}
