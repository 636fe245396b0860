import { join } from 'node:path';
import { memoryStore } from 'holdfast/memory';
import { createService } from 'holdfast-service';
import { describe, expect, it } from 'vitest';
import type { Manifest } from '../public-api.js';
import { cliReference } from '../reference/cli.js';
import { GROUPS } from '../reference/groups.js';
import { httpReference, type OpenApi } from '../reference/http.js';
import { libraryReference } from '../reference/library.js';
import { read, root } from '../tree.js';

const HINT = 'The reference is made from the declarations, the commands and the routes: npm run api:update.';

function expectPage(page: string, text: string): Promise<void> {
  return expect(text, HINT).toMatchFileSnapshot(join(root, `docs/reference/${page}.md`));
}

describe('the reference of the library', () => {
  const manifest = JSON.parse(read('packages/holdfast/package.json')) as Manifest;
  const pages = libraryReference(join(root, 'packages/holdfast'), manifest, GROUPS);

  it('has every entry point once', () => {
    const entries = Object.keys(manifest.exports).filter((entry) => entry !== './package.json');
    expect(GROUPS.flatMap((group) => group.entries).sort()).toEqual(entries.sort());
  });

  it.each(pages)('$page is what the declarations say (npm run api:update)', async ({ page, text }) => {
    await expectPage(page, text);
  });

  it.each(pages)('$page has a text for every name', ({ silent }) => {
    expect(silent).toEqual([]);
  });
});

it('the reference of the command is what its help says (npm run api:update)', async () => {
  await expectPage('cli', await cliReference(join(root, 'packages/cli')));
});

it('the reference of HTTP is what the OpenAPI document says (npm run api:update)', async () => {
  const service = createService({ store: memoryStore() });
  try {
    const response = await fetch(`${await service.listen()}/v2/openapi.json`);
    await expectPage('http', httpReference((await response.json()) as OpenApi));
  } finally {
    await service.close();
  }
});
