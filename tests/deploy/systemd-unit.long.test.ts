import { join } from 'node:path';
import { expect, it } from 'vitest';
import { usePlace } from '../cli/holdfast.js';
import { serve } from '../service/served.js';
import { lastOf, valuesOf } from './systemd.js';

const place = usePlace();

it('the unit starts the service with its environment: the state is where systemd makes its folder', async () => {
  const [command, ...args] = lastOf('ExecStart').split(' ').slice(1);
  expect(command).toMatch(/\/holdfast-cli\/bin\/holdfast\.js$/);
  expect(args).toEqual(['serve']);
  const variables = Object.fromEntries(
    valuesOf('Environment')
      .flatMap((line) => line.split(' '))
      .map((each) => each.split('=')),
  );
  const shown = await place.run(['serve', '--print-config'], { HOLDFAST_STORE: '', ...variables });
  expect([shown.status, shown.stderr]).toEqual([0, '']);
  expect(JSON.parse(shown.stdout).store).toBe(`sqlite:/var/lib/${lastOf('StateDirectory')}/locks.db`);
  const { url, running } = await serve(place, args.slice(1), {
    ...{ ...variables, XDG_STATE_HOME: join(place.folder, 'state') },
  });
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  running.kill('SIGTERM');
  expect((await running.ended).status).toBe(0);
});

it('the unit gives the service time to close, and more open files than it takes connections', () => {
  expect(Number(lastOf('TimeoutStopSec'))).toBeGreaterThan(12);
  expect(Number(lastOf('LimitNOFILE'))).toBeGreaterThan(20_000);
});
