/** The store contract around the commands: batches, names, views, probing and closing. */
import assert from 'node:assert/strict';
import { compareKeys, UnsupportedError, WAITER_LIFE_MS } from '../../protocol/index.js';
import {
  type CaseDefinition,
  claimOf,
  expectKind,
  releaseOf,
  renewOf,
  send,
  sendAll,
  sendExpecting,
  sendUntilAnswered,
  viewsOf,
} from './case-context.js';
import { awkwardKeys } from './names.js';

export const contract: readonly CaseDefinition[] = [
  {
    name: 'commands of one batch apply in order, each with its own reply',
    async try({ store, key, newHold }) {
      const [name, elsewhere] = [key(), key()];
      const [a, b] = [newHold(), newHold()];
      const replies = await sendAll(store, [
        claimOf(name, a),
        claimOf(elsewhere, b),
        claimOf(name, b),
        releaseOf(name, a),
        claimOf(name, b),
        claimOf(name, a),
        renewOf(name, b),
      ]);
      assert.deepEqual(
        replies.map((reply) => reply.kind),
        ['granted', 'granted', 'busy', 'released', 'granted', 'withdrawn', 'renewed'],
      );
      const decisions = replies.filter((_, index) => index !== 1).map((reply) => reply.decision);
      assert.deepEqual(
        decisions,
        decisions.toSorted((x, y) => x - y),
      );
    },
  },
  {
    name: 'an empty batch is no error',
    async try({ store }) {
      assert.deepEqual(store.apply([]), []);
    },
  },
  {
    name: 'a hundred keys in one batch each get their own reply',
    async try({ store, key, process }) {
      const own = process();
      const claims = Array.from({ length: 100 }, (_, number) =>
        claimOf(key(), { process: own, number: number + 1 }),
      );
      for (const reply of await sendUntilAnswered(store, claims)) expectKind(reply, 'granted');
    },
  },
  {
    name: 'a record of a newer format is refused and left as it is, and the rest of its batch goes on',
    applies: (harness) => harness.spoil !== undefined,
    async try({ harness, store, key, newHold }) {
      const [before, spoilt, after] = [key(), key(), key()];
      const hold = newHold();
      await send(store, claimOf(spoilt, hold));
      await harness.spoil?.(spoilt);
      for (let round = 0; round < 2; round++) {
        const names = [before, spoilt, after];
        const results = await Promise.allSettled(store.apply(names.map((name) => claimOf(name, hold))));
        assert.deepEqual(
          results.map(({ status }) => status),
          ['fulfilled', 'rejected', 'fulfilled'],
        );
        const [, refused] = results;
        assert.ok(
          refused?.status === 'rejected' && refused.reason instanceof UnsupportedError,
          String(refused),
        );
      }
    },
  },
  {
    name: 'every decision that changes something has a higher number, seen by all connections',
    async try({ store, another, name, newHold, doubtMs }) {
      const other = await another();
      const hold = newHold();
      const first = await send(store, claimOf(name, hold));
      const same = await send(other, claimOf(name, hold));
      const released = await send(other, releaseOf(name, hold));
      const next = await send(store, claimOf(name, newHold()));
      assert.equal(same.decision, first.decision, 'a repeated claim changed something');
      assert.ok(released.decision > first.decision && next.decision > released.decision);
      // `now` is the latest that it may be: an earlier reply may have been ahead by what it was not sure of.
      let earliest = 0;
      for (const reply of [first, same, released, next]) {
        assert.ok(reply.now >= earliest, `time went back from ${earliest} to ${reply.now}`);
        earliest = Math.max(earliest, reply.now - Math.max(doubtMs, reply.doubtMs ?? 0));
      }
    },
  },
  {
    name: 'F17: keys of awkward spelling never share a record',
    async try({ store, another, key, process }) {
      const base = `${key()}:`;
      const names = awkwardKeys(base);
      const own = process();
      const replies = await sendUntilAnswered(
        store,
        names.map((name, index) =>
          claimOf(name, { process: own, number: index + 1 }, { owner: String(index), ttlMs: 600_000 }),
        ),
      );
      for (const [index, reply] of replies.entries()) {
        expectKind(reply, 'granted', `the key ${JSON.stringify(names[index])} was taken for another`);
      }
      const other = await another();
      for (const [index, name] of names.entries()) {
        const view = await other.read(name);
        assert.equal(view?.key, name);
        assert.deepEqual(
          view?.holders.map(({ owner }) => owner),
          [String(index)],
          `read of ${JSON.stringify(name)}`,
        );
      }
      const listed = (await viewsOf(other, { prefix: base })).map((view) => view.key);
      assert.deepEqual(listed, names.toSorted(compareKeys));
    },
  },
  {
    name: 'views show holders and waiters in order, and never a hold or an inbox',
    async try({ store, another, name, key, process }) {
      const other = await another();
      const [holder, waiter] = [process(), process()];
      const secrets = [holder, waiter, 'secret-inbox'];
      const granted = await send(
        store,
        claimOf(name, { process: holder, number: 1 }, { owner: 'anna', inbox: 'secret-inbox-1' }),
      );
      const asked = claimOf(name, { process: waiter, number: 1 }, { owner: 'bert', inbox: 'secret-inbox-2' });
      const busy = await send(store, asked);
      const view = await other.read(name);
      const [listed] = await viewsOf(other, { prefix: name });
      assert.ok(view && listed && granted.kind === 'granted');
      const bert = { owner: 'bert', permits: 1, capacity: 1, since: busy.now, woken: false };
      for (const { holders, waiters, token, now } of [view, listed]) {
        assert.deepEqual(
          holders.map(({ owner }) => owner),
          ['anna'],
        );
        // A waiter that does not claim for some seconds is gone: on a slow machine the view may come that late.
        const isThere = store.traits.queue && now < busy.now + WAITER_LIFE_MS;
        assert.deepEqual(waiters, isThere ? [bert] : []);
        assert.equal(token, view.token);
        assert.ok(token >= granted.tokenLast);
      }
      const said = JSON.stringify([view, listed, busy, await other.probe()]);
      for (const secret of secrets) assert.ok(!said.includes(secret), `${secret} is shown`);
      assert.equal(await other.read(key()), null);
    },
  },
  {
    name: 'probe names the server, its time and what it promises',
    async try({ store, key, newHold }) {
      const { now } = await send(store, claimOf(key(), newHold()));
      const found = await store.probe();
      assert.ok(found.server.length > 0);
      assert.ok(
        Number.isInteger(found.now) && Math.abs(found.now - now) < 60_000,
        'another clock than in replies',
      );
      assert.ok(found.findings.length > 0 && found.findings.every(({ text }) => text.length > 0));
    },
  },
  {
    name: 'closing twice is fine; afterwards commands are refused, and other connections go on',
    async try({ store, another, name, newHold }) {
      const hold = newHold();
      const closing = await another();
      await sendExpecting(closing, claimOf(name, hold), 'granted');
      await closing.close();
      await closing.close();
      await assert.rejects(send(closing, renewOf(name, hold)));
      await sendExpecting(store, renewOf(name, hold), 'renewed', 'closing a connection ended a hold');
    },
  },
];
