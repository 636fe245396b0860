/** Holdfast in rows of the table of LockServiceCentral, which other software has. */
import { lockServiceCentral } from 'holdfast/postgres/layouts';
import { holdfastOn } from '../postgres-contenders.js';

export const contender = holdfastOn({ layout: lockServiceCentral });
