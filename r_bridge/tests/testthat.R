library(testthat)
library(dpsurvey)

test_check("dpsurvey")
