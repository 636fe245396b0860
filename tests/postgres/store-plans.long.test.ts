/** The same with a larger table. */
import './store-plans.test.js';
