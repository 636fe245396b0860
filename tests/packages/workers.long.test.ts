/** The HTTP store in a Cloudflare Worker, in workerd, which is what Cloudflare runs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { build } from 'esbuild';
import { memoryStore } from 'holdfast/memory';
import { createService } from 'holdfast-service';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { blocks } from '../repository/markdown.js';
import { root } from '../repository/tree.js';
import { Projects } from './projects.js';

const WORKERD = join(root, 'node_modules/workerd/bin/workerd');
const PAGE = 'docs/packages.md';

const projects = new Projects();
beforeAll(() => projects.pack());
afterAll(() => projects.remove());

const configOf = (url: string): string => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "worker", esModule = embed "worker.js")],
      compatibilityDate = "2026-01-01",
      compatibilityFlags = ["nodejs_compat"],
      bindings = [(name = "HOLDFAST_URL", text = "${url}")],
    )),
    (name = "internet", network = (allow = ["private", "public"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
`;

it("the page's worker acquires a lock for each request, one request at a time", async () => {
  const program = blocks.find(({ page, code }) => page === PAGE && code.includes('export default'))?.code;
  if (!program) throw new Error(`${PAGE} has no worker.`);
  const store = memoryStore();
  const service = createService({ store });
  const url = await service.listen({ port: 0 });
  const project = await projects.make({ 'program.ts': program, 'config.capnp': configOf(url) });
  await build({
    absWorkingDir: project,
    entryPoints: ['program.ts'],
    outfile: join(project, 'worker.js'),
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    conditions: ['workerd', 'worker'],
    external: ['node:*'],
    logLevel: 'silent',
  });
  const worker = spawn(WORKERD, ['serve', 'config.capnp', '--control-fd=1'], {
    cwd: project,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    let said = '';
    for await (const chunk of worker.stdout) {
      said += chunk;
      if (said.includes('\n')) break;
    }
    const { port } = JSON.parse(said) as { port: number };
    const ask = async (): Promise<string> => (await fetch(`http://127.0.0.1:${port}/`)).text();
    const answers = await Promise.all([ask(), ask(), ask()]);
    const tokens = answers.map((answer) => Number(/^done under token (\d+)$/.exec(answer)?.[1]));
    expect(new Set(tokens).size, answers.join('\n')).toBe(3);
    expect(tokens.every(Number.isSafeInteger)).toBe(true);
  } finally {
    worker.kill('SIGKILL');
    await once(worker, 'exit');
    await service.close();
    await store.close();
  }
});
