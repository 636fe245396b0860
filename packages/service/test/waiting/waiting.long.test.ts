/** The same with a thousand waiters. */
import './waiting.test.js';
