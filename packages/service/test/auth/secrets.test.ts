/** Nothing secret in logs, errors, lists, events or metrics: keys, their hashes, tokens, holds, Authorization. */
import { afterEach, describe, expect, it } from 'vitest';
import { hashOf } from '../../src/auth/api-key.js';
import { createAuth } from '../../src/auth/index.js';
import { clearScene, listen, stage, until } from '../scene.js';
import { AUDIENCE, bearer, issuer, keyFile } from './issuer.js';

afterEach(clearScene);

describe('what is secret', () => {
  it('is in no log line, answer, list or event, whether requests go well or not', async () => {
    const from = await issuer();
    const { path, keys } = await keyFile({ ada: ['admin:own'], bob: ['read:own'] });
    const auth = createAuth({
      apiKeys: path,
      jwt: { issuer: from.url, audience: AUDIENCE, jwks: `${from.url}/jwks` },
    });
    const scene = await stage({ auth });
    const good = await from.token();
    const expired = await from.token({ exp: 1 });
    const unknown = `hfk_000000000000_${'S'.repeat(44)}`;
    const said: string[] = [];
    const secrets = new Set([
      keys.ada,
      keys.bob,
      good,
      expired,
      unknown,
      hashOf(keys.ada),
      'an-idempotency-key-of-ada',
    ]);
    const stream = await listen(scene.url, '/v2/events', bearer(keys.bob));
    const ask = async (
      method: string,
      path: string,
      body: unknown,
      as: string,
      more = {},
    ): Promise<string> => {
      const answer = await scene.call(method, path, body, { ...bearer(as), ...more });
      const hold = answer.status === 200 ? answer.body.hold : undefined;
      said.push(JSON.stringify({ ...answer.body, hold: undefined }), JSON.stringify([...answer.headers]));
      return String(hold);
    };
    for (const as of [keys.ada, good, keys.bob, expired, unknown, `${keys.ada}x`, keys.ada.slice(0, -1)]) {
      const lock = `/v2/locks/own/${said.length}`;
      const hold = await ask('POST', `${lock}/acquire`, { ttl: '30s' }, as, {
        'idempotency-key': 'an-idempotency-key-of-ada',
      });
      if (hold !== 'undefined') secrets.add(hold.split('.')[0] ?? '');
      await ask('GET', lock, undefined, as);
      await ask('GET', '/v2/locks', undefined, as);
      await ask('POST', `${lock}/renew`, { hold, ttl: '30s' }, as);
      await ask('POST', `${lock}/acquire`, { ttl: 'wrong', hold }, as);
      await ask('POST', `${lock}/evict`, {}, as);
      await ask('POST', `${lock}/release`, { hold }, as);
      await ask('POST', '/v2/batch', { commands: [{ kind: 'strange', hold }] }, as);
      await ask('GET', `/nothing/${hold}`, undefined, as);
    }
    // What comes and goes between two looks is in no event: this one stays.
    const stays = await ask('POST', '/v2/locks/own/stays/acquire', { ttl: '30s' }, keys.ada);
    secrets.add(stays.split('.')[0] ?? '');
    await until(() => stream.text().includes('own/stays'), 'an event came');
    expect(secrets.size).toBeGreaterThan(8);
    const everything = [...said, ...scene.lines, stream.text()].join('\n');
    // Of a key the secret part alone is enough to be found.
    const parts = [...secrets].flatMap((secret) =>
      secret.length > 40 ? [secret, secret.slice(17)] : [secret],
    );
    const found = parts.filter((secret) => everything.includes(secret));
    expect(found).toEqual([]);
    expect(everything).not.toMatch(/authorization/i);
    expect(everything).toContain('"principal":"key:ada"');
    // Nor in the metrics, once there are some.
    const metrics = await scene.call('GET', '/metrics', undefined, bearer(keys.ada));
    for (const secret of secrets) expect(metrics.text).not.toContain(secret);
  });

  it('is not shown when the keys or the issuer are away either', async () => {
    const from = await issuer();
    const { path, keys } = await keyFile({ ada: ['admin:own'] });
    const auth = createAuth({
      apiKeys: path,
      jwt: { issuer: from.url, audience: AUDIENCE, jwks: `${from.url}/jwks` },
    });
    const scene = await stage({ auth });
    from.failing = 500;
    const token = await from.token();
    const answers = [
      await scene.call('GET', '/v2/locks/own/a', undefined, bearer(token)),
      await scene.call('GET', '/v2/locks/own/a', undefined, bearer(`${keys.ada}.x.y`)),
    ];
    const everything = [...answers.map(({ text }) => text), ...scene.lines].join('\n');
    for (const secret of [token, token.split('.')[2] ?? '', keys.ada.slice(17)])
      expect(everything).not.toContain(secret);
  });
});
