/** For authors of stores: the conformance suite, the model, and a store with planted faults. */
export { conformanceSuite, type SuiteOptions } from './conformance/index.js';
export { type Fault, type FaultyStore, type FaultyStoreOptions, faultyStore } from './faulty-store.js';
export type { ConformanceCase, Harness } from './harness.js';
export { type ModelOptions, type ModelReport, runModel } from './model/index.js';
export { type Random, seededRandom } from './random.js';
