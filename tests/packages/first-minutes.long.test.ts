/**
 * A stranger's first ten minutes: the lines of each README pasted into an empty folder with the packed packages, on every
 * runtime. What npm would fetch is linked; the packages themselves are unpacked from their tarballs.
 */
import { mkdtemp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { transform } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { blocks } from '../repository/markdown.js';
import { run } from '../repository/shell.js';
import { Projects } from './projects.js';
import { nodeCommand, OTHER_NODES, RUNTIMES } from './runtime.js';

const projects = new Projects();
beforeAll(() => projects.pack());
afterAll(() => projects.remove());

const runtimes: readonly (readonly [string, () => Promise<readonly string[]> | readonly string[]])[] = [
  ['this Node', () => RUNTIMES.node],
  ...Object.entries(OTHER_NODES).map(([name, version]) => [name, () => nodeCommand(version)] as const),
  ['Bun', () => RUNTIMES.bun],
  ['Deno', () => RUNTIMES.deno],
];

const OUTPUT = /^only one of me, with token \d{16}\n$/;

describe.each(['README.md', 'packages/holdfast/README.md'])('the first program of %s', (page) => {
  it.each(runtimes)('runs as printed with nothing else installed, on %s', async (_, command) => {
    const program = blocks.find((block) => block.page === page && block.language === 'ts');
    const { code } = await transform(program?.code ?? '', { loader: 'ts' });
    const project = await projects.make({ 'program.mjs': code });
    const [file = '', ...args] = await command();
    expect(await run(file, [...args, 'program.mjs'], { cwd: project })).toMatch(OUTPUT);
  });
});

it.each(runtimes.filter(([name]) => /Node/.test(name)))(
  'the first command of its README runs as printed, on %s',
  async (_, command) => {
    const page = blocks.find((block) => block.page === 'packages/cli/README.md');
    const [, line = ''] = /^npx holdfast (.*)$/m.exec(page?.code ?? '') ?? [];
    expect(line).toBe('run hello -- echo "only one of me"');
    const others = ['@photostructure/sqlite', 'node-gyp-build'];
    const project = await projects.make({}, others, ['holdfast', 'holdfast-cli']);
    const [file = ''] = await command();
    const holdfast = join(project, 'node_modules/holdfast-cli/bin/holdfast.js');
    const temporary = await mkdtemp(join(project, 'tmp-'));
    const env = { XDG_STATE_HOME: project, HOME: project, TMPDIR: temporary };
    expect(await run('sh', ['-c', `"${file}" "${holdfast}" ${line}`], { cwd: project, env })).toBe(
      'only one of me\n',
    );
    // Every user of a machine can write there: code that the next start reads back could be anybody's.
    expect(await readdir(temporary)).toEqual([]);
  },
);
