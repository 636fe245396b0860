/** LockServiceCentral and Holdfast on one etcd: every record of the service is attached to an etcd lease of its own. */
import { randomUUID } from 'node:crypto';
import { type EtcdClient, etcdClient, etcdStore } from 'holdfast/etcd';
import { lockServiceCentral } from 'holdfast/etcd/layouts';
import type { Store } from 'holdfast/protocol';
import { type EtcdServer, startEtcd } from 'holdfast-test-servers';
import { ask, deleteKey, putValue, valuesOf } from '../etcd/store-scene.js';
import { CENTRAL_TIMES, type CentralFleet } from './central-fleet.js';
import { closeLocks, learnTime } from './fleet.js';
import type { MachineClock } from './foreign.js';
import { type CentralFields, CentralOnRecords, type Operate } from './foreign-central.js';

const RETRIES_MAX = 3;
const encoded = (text: string): string => Buffer.from(text).toString('base64');

interface Ranged {
  readonly kvs?: readonly { readonly value: string; readonly mod_revision: string }[];
}

/** Exactly its calls: a read, a lease, and a transaction on the revision that was read. */
export function centralOnEtcd(url: string, prefix: string): Operate {
  return async (id, change, now) => {
    const key = encoded(prefix + id);
    for (let attempt = 0; attempt <= RETRIES_MAX; attempt++) {
      const { kvs = [] } = await ask<Ranged>(url, '/v3/kv/range', { key });
      const [found] = kvs;
      const fields = found && JSON.parse(Buffer.from(found.value, 'base64').toString());
      const next = change((fields as CentralFields | undefined) ?? null);
      if (next === undefined) return true;
      const compare = [
        found
          ? { key, target: 'MOD', mod_revision: found.mod_revision }
          : { key, target: 'CREATE', create_revision: '0' },
      ];
      if (next === null) {
        const success = [{ request_delete_range: { key } }];
        if ((await ask<{ succeeded?: boolean }>(url, '/v3/kv/txn', { compare, success })).succeeded)
          return true;
        continue;
      }
      const TTL = String(Math.max(1, next.expiry - now));
      const { ID } = await ask<{ ID: string }>(url, '/v3/lease/grant', { TTL });
      const success = [{ request_put: { key, value: encoded(JSON.stringify(next)), lease: ID } }];
      if ((await ask<{ succeeded?: boolean }>(url, '/v3/kv/txn', { compare, success })).succeeded)
        return true;
      await ask(url, '/v3/lease/revoke', { ID });
    }
    return false;
  };
}

export class EtcdFleet implements CentralFleet {
  readonly layout = lockServiceCentral;
  readonly clocksApartMs = CENTRAL_TIMES.clocksApartMs;
  readonly afterForeignMs = CENTRAL_TIMES.afterForeignMs;
  readonly afterOursMs = CENTRAL_TIMES.afterOursMs;
  readonly prefix = `central-${randomUUID()}/`;
  server!: EtcdServer;
  #client!: EtcdClient;

  get url(): string {
    return `etcd://${this.server.host}:${this.server.port}/${this.prefix}?layout=${this.layout.name}`;
  }

  async open(): Promise<void> {
    this.server = await startEtcd();
    this.#client = etcdClient({ endpoints: [this.server.url] });
    await learnTime(this.store());
  }

  async close(): Promise<void> {
    await closeLocks();
    await this.server.stop();
  }

  store(): Store {
    return etcdStore(this.#client, { prefix: this.prefix, layout: this.layout });
  }

  foreign(clock?: MachineClock, namespace?: string): CentralOnRecords {
    return new CentralOnRecords(centralOnEtcd(this.server.url, this.prefix), clock, namespace);
  }

  async record(name: string): Promise<Record<string, unknown> | null> {
    const id = this.#idOf(name);
    const text = (await valuesOf(this.server.url, id)).get(id);
    return text === undefined ? null : JSON.parse(text);
  }

  async stored(name: string): Promise<CentralFields | null> {
    return (await this.record(name)) as CentralFields | null;
  }

  async edit(name: string, fields: object): Promise<void> {
    const record = { ...(await this.record(name)), ...fields };
    await putValue(this.server.url, this.#idOf(name), JSON.stringify(record));
  }

  async forget(name: string): Promise<void> {
    await deleteKey(this.server.url, this.#idOf(name));
  }

  #idOf(name: string): string {
    return `${this.prefix}${name.includes(':') ? name : `default:${name}`}`;
  }
}
