/** Mutexes, semaphores and read-write locks through the real engine: never too many holders, and in order. */
import assert from 'node:assert/strict';
import { WINDOW_MS } from '../../protocol/index.js';
import { eventually } from '../pause.js';
import type { CaseDefinition } from './case-context.js';
import { CriticalSection, nth, USER_MS_MAX, waitersOf, withUsers } from './users.js';

export const locks: readonly CaseDefinition[] = [
  {
    name: 'of many contenders over several connections one is inside at a time, no update is lost, tokens rise',
    async try(context) {
      const { name: key } = context;
      const room = new CriticalSection();
      await withUsers(context, 3, async (users) => {
        const contenders = Array.from({ length: 12 }, (_, index) => nth(users, index));
        await Promise.all(
          contenders.map(async (user) => {
            for (let round = 0; round < 4; round++) await user.withLock(key, (lease) => room.visit(lease, 1));
          }),
        );
      });
      assert.equal(room.most, 1, `${room.most} were inside at once`);
      assert.equal(room.visits, 48, 'updates were lost');
      assert.deepEqual(
        room.tokens,
        room.tokens.toSorted((a, b) => a - b),
        'tokens fell',
      );
      assert.equal(new Set(room.tokens).size, room.tokens.length, 'a token was given twice');
    },
  },
  {
    name: 'a semaphore lets in as many as it has permits, over several connections, and no more',
    shared: true,
    async try(context) {
      const { name: key } = context;
      const room = new CriticalSection();
      await withUsers(context, 3, async (users) => {
        const contenders = Array.from({ length: 12 }, (_, index) => nth(users, index));
        await Promise.all(
          contenders.map((user) =>
            user.semaphore(key, { capacity: 3 }).withLock((lease) => room.visit(lease, 20, 2)),
          ),
        );
      });
      assert.ok(room.most <= 3, `${room.most} were inside at once`);
      assert.equal(new Set(room.tokens).size, 12, 'a token was given twice');
    },
  },
  {
    name: 'readers share, a writer is alone and gets its turn among readers that keep coming',
    shared: true,
    async try(context) {
      const { name: key } = context;
      await withUsers(context, 3, async (users) => {
        const [readers, writers] = [new CriticalSection(), new CriticalSection()];
        let written = false;
        const reading = Array.from({ length: 6 }, async (_, index) => {
          // Without a queue a writer may starve: let the readers stop after a while.
          const rounds = context.store.traits.queue ? 200 : 20;
          for (let round = 0; round < rounds && (round < 3 || !written); round++) {
            await nth(users, index)
              .readWrite(key)
              .read.withLock(async (lease) => {
                assert.equal(writers.inside, 0, 'a reader beside a writer');
                await readers.visit(lease, 10, 2);
              });
          }
        });
        await eventually('readers side by side', USER_MS_MAX, () => readers.most > 1);
        const write = nth(users, 0).readWrite(key).write;
        await write.withLock(async (lease) => {
          assert.equal(readers.inside, 0, 'a writer beside a reader');
          await writers.visit(lease, 20);
        });
        written = true;
        await Promise.all(reading);
      });
    },
  },
  {
    name: 'F19: across connections those who came first are served first, unless they miss their window',
    needs: ({ queue }) => queue,
    async try(context) {
      const { name: key } = context;
      await withUsers(context, 4, async (users, replies) => {
        const first = await nth(users, 0).acquire(key);
        const came = [2, 1, 3];
        const served: number[] = [];
        const waiting: Promise<void>[] = [];
        for (const index of came) {
          waiting.push(
            nth(users, index).withLock(key, () => {
              served.push(index);
            }),
          );
          await waitersOf(nth(users, 0), key, waiting.length);
        }
        await first.release();
        await Promise.all(waiting);
        const released = replies.flat().filter(({ kind }) => kind === 'released');
        const grantedAt = (user: number): number =>
          replies[user]?.find(({ kind }) => kind === 'granted')?.now ?? Number.POSITIVE_INFINITY;
        for (const [turn, user] of served.entries()) {
          const passed = came.slice(0, came.indexOf(user)).filter((other) => served.indexOf(other) > turn);
          const [head] = passed;
          if (head === undefined) continue;
          const at = grantedAt(user);
          const freedAt = released.map(({ now }) => now).filter((now) => now <= at);
          const freeAt = Math.max(...freedAt);
          // The head may have missed its window at an earlier release, and not have come back since.
          const before = came.slice(0, came.indexOf(head));
          const isMissing = (since: number): boolean =>
            at - since >= WINDOW_MS &&
            before.every((other) => grantedAt(other) <= since) &&
            !replies[head]?.some(({ now }) => now > since && now <= at);
          const mayPass = at - freeAt >= WINDOW_MS || freedAt.some(isMissing);
          assert.ok(mayPass, `user ${user} passed user ${head} after ${at - freeAt} ms`);
          for (const { kind, now, doubtMs = 0 } of replies[head] ?? []) {
            const isInWindow = now - freeAt > Math.max(doubtMs, context.doubtMs) && now - freeAt < WINDOW_MS;
            const isRefused = kind === 'busy' && isInWindow && now < at;
            assert.ok(!isRefused, `user ${head} was refused in its window`);
          }
        }
      });
    },
  },
];
