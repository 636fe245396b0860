/** Completion in the real shells: words are typed at a terminal, Tab is pressed, and the shell says what it would run. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { available, need } from 'holdfast-test-servers';
import { describe, expect, it } from 'vitest';
import { type Running, usePlace } from './holdfast.js';

const place = usePlace();
const hasTerminals =
  process.platform === 'linux' && spawnSync('sh', ['-c', 'command -v script']).status === 0;

interface Shell {
  /** Arguments for a shell without settings of the user, whose first line is typed. */
  readonly args: string;
  /** Loads the completion, and replaces `holdfast` by a function that prints its arguments. */
  readonly setup: (script: string) => string;
}

/** Each says READY when its settings are in force; written in two parts, so that the echo of the line is no match. */
const SHELLS: Readonly<Record<string, Shell>> = {
  bash: {
    args: '--norc --noprofile -i',
    setup: (script) => `source '${script}'; holdfast() { echo "RUNS<$*>"; }; echo REA''DY`,
  },
  zsh: {
    args: '-f -i',
    setup: (script) =>
      `autoload -U compinit; compinit -u -D; source '${script}'; holdfast() { echo "RUNS<$*>"; }; echo REA''DY`,
  },
  fish: {
    args: '--no-config -i',
    setup: (script) => `source '${script}'; function holdfast; echo "RUNS<$argv>"; end; echo REA''DY`,
  },
};
const usable = (shell: string): boolean => shell === 'bash' || available(shell as 'zsh' | 'fish');

async function scriptOf(shell: string): Promise<string> {
  const { status, stdout, stderr } = await place.run(['completion', shell]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  const file = join(place.folder, `completion.${shell}`);
  writeFileSync(file, stdout);
  return file;
}

async function openShell(name: string): Promise<Running> {
  const { args, setup } = SHELLS[name] as Shell;
  const path = name === 'bash' ? name : await need(name as 'zsh' | 'fish');
  const script = await scriptOf(name);
  const line = `exec env -u HOLDFAST_STORE TERM=dumb HOME='${place.folder}' PS1='$ ' '${path}' ${args}`;
  const session = place.startOther('script', ['-qefc', line, 'typescript']);
  session.child.stdin?.write(`${setup(script)}\r`);
  await session.said(/READY/);
  return session;
}

describe.runIf(hasTerminals)('completion at a terminal', () => {
  const typed = [
    ['holdfast comple\t zs\t', 'completion zsh'],
    ['holdfast run job --tt\t 5s --shar\t', 'run job --ttl 5s --shared'],
    ['holdfast --store sqlite:x ren\t --handoff ./lea\t', 'renew --handoff ./lease'],
    ['holdfast api-key rev\t', 'api-key revoke'],
    ['holdfast serve --log-level sil\t', 'serve --log-level silent'],
    ['holdfast run job -- ./prog\t', 'run job -- ./program'],
  ] as const;
  describe.each(Object.keys(SHELLS))('%s', (name) => {
    it.runIf(usable(name))(
      'completes commands, options, values, files and the command line after --',
      async () => {
        writeFileSync(join(place.folder, 'lease'), '');
        writeFileSync(join(place.folder, 'program'), '', { mode: 0o755 });
        const session = await openShell(name);
        for (const [keys, expected] of typed) {
          const words = keys.split('\t');
          // One Tab at a time: a shell may drop what is typed while it completes.
          for (const word of words.slice(0, -1)) session.child.stdin?.write(`${word}\t`);
          session.child.stdin?.write('\r');
          const runs = new RegExp(`RUNS<(?:--store sqlite:x )?${expected.replaceAll('.', '\\.')} ?>`);
          await session.said(runs);
        }
        session.child.stdin?.write('exit\r');
        await session.ended;
      },
    );
  });
});

describe('the completion script', () => {
  it('names every command and every option of the man page, for each shell', async () => {
    const man = (await place.run(['man'])).stdout.replaceAll('\\-', '-');
    const commands = [...man.matchAll(/^\.B holdfast (\S+)/gm)].map(([, name = '']) => name);
    const options = [...man.matchAll(/^\.B (?:-\w, )?--([a-z-]+)/gm)].map(([, option = '']) => option);
    expect([commands.length > 10, options.length > 40]).toEqual([true, true]);
    for (const shell of Object.keys(SHELLS)) {
      const { stdout: script } = await place.run(['completion', shell]);
      for (const command of commands) expect(script).toMatch(new RegExp(`\\b${command}\\b`));
      for (const option of options) expect(script).toMatch(new RegExp(`(?:--|-l )${option}\\b`));
    }
  });

  it('of bash lists what is possible', async () => {
    const script = await scriptOf('bash');
    const words = (line: string): string[] => {
      const program = `source '${script}'; COMP_WORDS=(${line}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _holdfast; printf '%s\\n' "\${COMPREPLY[@]}"`;
      return spawnSync('bash', ['--norc', '-c', program], { encoding: 'utf8' }).stdout.trim().split('\n');
    };
    expect(words(`holdfast ''`)).toEqual(expect.arrayContaining(['run', 'acquire', 'inspect', 'api-key']));
    expect(words('holdfast inspect --')).toEqual(['--quiet', '--store', '--namespace', '--json', '--help']);
    expect(words(`holdfast completion ''`)).toEqual(['bash', 'zsh', 'fish']);
    // A time is the user's to choose.
    expect(words(`holdfast run job --ttl ''`)).toEqual(['']);
  });

  it('is refused for a shell that has none', async () => {
    expect(await place.run(['completion', 'tcsh'])).toMatchObject({
      status: 64,
      stderr: 'holdfast: no completion for "tcsh"; shells are bash, zsh, fish\n',
    });
  });
});

describe('the man page', () => {
  const hasMan = spawnSync('sh', ['-c', 'command -v man groff']).status === 0;

  it('is made from the table of commands, and the package has the same', async () => {
    const { status, stdout } = await place.run(['man']);
    expect(status).toBe(0);
    await expect(stdout).toMatchFileSnapshot('../../packages/cli/man/holdfast.1');
  });

  it.runIf(hasMan)('is shown by man without a warning', async () => {
    writeFileSync(join(place.folder, 'holdfast.1'), (await place.run(['man'])).stdout);
    const shown = spawnSync('man', ['--warnings', '-E', 'UTF-8', '-l', '-Tutf8', '-P', 'cat', 'holdfast.1'], {
      cwd: place.folder,
      encoding: 'utf8',
      env: { ...process.env, MANWIDTH: '120', MAN_KEEP_FORMATTING: '' },
    });
    expect(shown.stderr).toBe('');
    expect(shown.status).toBe(0);
    // Bold letters are struck twice.
    const plain = shown.stdout.replace(/.[\b]/g, '');
    for (const text of ['holdfast run KEY [OPTIONS] -- COMMAND [ARGS]', '--handoff FILE', 'EXIT STATUS'])
      expect(plain).toContain(text);
  });
});

describe('the exit statuses', () => {
  it('are the same in the help, in the man page and in the document', async () => {
    const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');
    const table = page.slice(page.indexOf('\n## Exit status'));
    const documented = [...table.matchAll(/^\| (\d+(?:\+N)?) \|/gm)].map(([, status]) => status);
    const { stdout: help } = await place.run(['--help']);
    const statuses = help.slice(help.indexOf('\nEXIT STATUS')).matchAll(/^ {2}(\d+(?:\+N)?) /gm);
    expect([...statuses].map(([, status]) => status)).toEqual(documented);
    const { stdout: man } = await place.run(['man']);
    for (const status of documented) expect(man).toContain(`.B ${status}\n`);
  });
});
