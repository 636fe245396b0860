import { join } from 'node:path';
import { memoryStore } from 'holdfast/memory';
import { createApiKey, createAuth, createService } from 'holdfast-service';
import { expect, it } from 'vitest';
import { BINARY, usePlace } from './holdfast.js';

const place = usePlace();

it('a service is a store, and its key goes on to commands that lock, too', async () => {
  const keys = join(place.folder, 'keys.json');
  const { text } = await createApiKey({ path: keys, by: 'test' }, { name: 'ada', rights: ['lock:default'] });
  const store = memoryStore();
  const service = createService({ store, auth: createAuth({ apiKeys: keys }) });
  try {
    const environment = { HOLDFAST_STORE: await service.listen(), HOLDFAST_API_KEY: text };
    const inner = `"${process.execPath}" "${BINARY}" run inner -- sh -c 'echo "$HOLDFAST_LOCK"'`;
    const both = await place.run(
      ['run', 'outer', '--', 'sh', '-c', `${inner}; echo "$HOLDFAST_LOCK"`],
      environment,
    );
    expect(both).toMatchObject({ status: 0, stdout: 'inner\nouter\n', stderr: '' });
    const hourly = ['run', 'hourly', '--wait', '0', '--min-hold', '1h', '--'];
    expect(await place.run([...hourly, 'no-such-command'], environment)).toMatchObject({
      status: 127,
      stderr: 'holdfast: no-such-command: command not found\n',
    });
    expect(await place.run([...hourly, 'true'], environment)).toMatchObject({ status: 0, stderr: '' });
    const inUrl = environment.HOLDFAST_STORE.replace('//', `//${text}@`);
    const renewed = await place.run(['renew'], { HOLDFAST_STORE: inUrl, HOLDFAST_HANDOFF: 'none' });
    expect(renewed.stderr).toMatch(/\(store: http:\/\/\*\*\*@127\.0\.0\.1:\d+\)$/m);
    expect(renewed.stdout + renewed.stderr).not.toContain(text);
    const nobody = await place.run(['ls'], { ...environment, HOLDFAST_API_KEY: '' });
    expect([nobody.status, nobody.stderr]).toEqual([69, expect.stringContaining('HOLDFAST_API_KEY')]);
  } finally {
    await service.close();
    await store.close();
  }
});
