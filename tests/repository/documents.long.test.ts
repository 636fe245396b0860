/** The pages that `npm test` leaves out, and the examples. */
import './documents.test.js';
