/** Holdfast in rows of the table of LockServiceCentral, which other software has. */
import { holdfastOn } from '../postgres-contenders.js';

export const contender = holdfastOn({ layout: 'lock-service-central' });
