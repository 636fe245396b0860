import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { available } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BINARY } from '../cli/holdfast.js';
import { run } from '../repository/shell.js';
import { unit } from './systemd.js';

/** In tenths: 13 is an exposure of 1.3, which is "OK". A service without any hardening has 96. */
const EXPOSURE_MAX = 15;

describe.runIf(available('systemd-analyze'))('systemd-analyze', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-unit-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const write = (text: string): void => writeFileSync(join(folder, 'holdfast.service'), text);
  // It looks for the programs of a unit: those of this machine.
  const here = unit
    .replace('/usr/bin/node', process.execPath)
    .replace('/opt/holdfast/node_modules/holdfast-cli/bin/holdfast.js', BINARY);
  const analyze = (...args: readonly string[]): Promise<string> =>
    run('systemd-analyze', [...args, './holdfast.service'], { cwd: folder });

  beforeAll(() => write(here));

  it('finds nothing wrong with the unit', async () => {
    expect(await analyze('verify', '--man=no', '--recursive-errors=no')).toBe('');
  });

  it('finds it hardened', async () => {
    await analyze('security', '--offline=true', `--threshold=${EXPOSURE_MAX}`);
    write(here.replace('ProtectSystem=strict', '').replace(/^SystemCallFilter=.*$/gm, ''));
    await expect(analyze('security', '--offline=true', `--threshold=${EXPOSURE_MAX}`)).rejects.toThrow(
      'exposure',
    );
  });
});
