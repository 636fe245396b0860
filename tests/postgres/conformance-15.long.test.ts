/** The model of the suite, with all its sequences. */
import './conformance-15.test.js';
