/** The same, and that the records are gone after their half minute. */
import './store-records.test.js';
