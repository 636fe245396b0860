/** The public names of the quorum store. See store.ts. */
export { type Enrolment, enrolMembers } from './enrolment.js';
export { type QuorumStoreOptions, quorumStore } from './store.js';
