import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type Manifest, publicApi } from '../public-api.js';
import { read, root } from '../tree.js';

const HEADER = `# The public API of holdfast

Written from the emitted declarations by \`npm run api:update\`, and compared with them by a test: what a user can
see changes only where this page changes too.

`;

it('the public API is what packages/holdfast/api says (if it was meant to change: npm run api:update)', async () => {
  const manifest = JSON.parse(read('packages/holdfast/package.json')) as Manifest;
  const page = HEADER + publicApi(join(root, 'packages/holdfast'), manifest);
  const hint = 'The public API changed. If that was meant: npm run api:update, and a line in CHANGELOG.md.';
  await expect(page, hint).toMatchFileSnapshot(join(root, 'packages/holdfast/api/holdfast.api.md'));
});
