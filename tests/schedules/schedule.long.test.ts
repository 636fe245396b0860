/** The same for a minute, and with kills. */
import './schedule.test.js';
