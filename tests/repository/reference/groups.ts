/** Which entry points of the library are on which page of the reference. */
import type { Group } from './library.js';

const MADE = 'Made from the declarations of the package by `npm run api:update`; a test compares them.';

export const GROUPS: readonly Group[] = [
  {
    page: 'library',
    title: 'Library reference',
    about: `Everything that \`holdfast\` exports: making locks, leases, primitives, options with their defaults, errors and events. The [guide](../guide.md) explains it with examples. ${MADE}`,
    entries: ['.', './env'],
    everyMember: true,
  },
  {
    page: 'stores',
    title: 'Reference of the stores',
    about: `How each store is made, and its options with their defaults. What a store promises is on [its page](../which-store.md). ${MADE}`,
    entries: [
      './memory',
      './sqlite',
      './redis',
      './quorum',
      './postgres',
      './postgres/layouts',
      './supabase',
      './mysql',
      './dynamodb',
      './dynamodb/layouts',
      './firestore',
      './firestore/layouts',
      './nats',
      './nats/layouts',
      './etcd',
      './etcd/layouts',
      './http',
    ],
    everyMember: false,
  },
  {
    page: 'tools',
    title: 'Reference of guards, schedules and telemetry',
    about: `The parts around the lock: [guards](../guards.md), [schedules](../schedules.md), [spans and metrics](../observability.md). ${MADE}`,
    entries: ['./fences', './schedule', './opentelemetry', './prometheus'],
    everyMember: false,
  },
  {
    page: 'authors',
    title: 'Reference for authors of stores and servers',
    about: `The state machine and the store contract, the adapter for engines with compare-and-swap, the engine without leases, the clock and the test kit: for those who [add a store](../adding-a-store.md) or [build a server](../engine.md). ${MADE}`,
    entries: ['./protocol', './compare-and-swap', './engine', './clock', './testkit'],
    everyMember: false,
  },
];
