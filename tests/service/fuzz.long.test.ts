/** The same with many more requests, on two stores. */
import './fuzz.test.js';
