/** Whoever changes the library learns at once that a planted bug has to follow. `npm run test:long` plants them. */
import { it } from 'vitest';
import { edited } from './plant.ts';
import { PLANTED_BUGS } from './planted-bugs.ts';
import { PLANTED_QUORUM_BUGS } from './planted-quorum-bugs.ts';

it('each edit of a planted bug is found once in the built library', async () => {
  for (const { edits } of [...PLANTED_BUGS, ...PLANTED_QUORUM_BUGS]) {
    for (const edit of edits) await edited(edit);
  }
});
