/** The same with a larger table, on every version of PostgreSQL. */
import './store-plans.test.js';
