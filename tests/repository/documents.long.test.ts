/** The pages that `npm test` leaves out. */
import './documents.test.js';
