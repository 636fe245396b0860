/** Every workload on every store. */
import './bench.test.js';
