/** The planted bugs that `npm test` leaves out. */
import './planted.test.js';
